"""The learned funnel: samples → an encoder that releases codes. Needs the extra `learned`."""

from ..errors import MissingDependencyError

try:
    import safetensors  # noqa: F401
    import torch  # noqa: F401
except ImportError as error:
    raise MissingDependencyError(
        f"privacyfunnel.learned needs {error.name}: pip install 'privacyfunnel[learned]'"
    ) from None

from .autoencoder import Autoencoder
from .conditional import ConditionalFunnel
from .deep_variational import DeepVariationalFunnel
from .encoder import FunnelEncoder
from .funnel import Funnel
from .published import PublishedFunnel

__all__ = [
    "Autoencoder",
    "ConditionalFunnel",
    "DeepVariationalFunnel",
    "Funnel",
    "FunnelEncoder",
    "PublishedFunnel",
]
