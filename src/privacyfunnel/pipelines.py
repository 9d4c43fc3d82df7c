"""What estimators of a private attribute do in a pipeline of scikit-learn, where y is somebody else's."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

from sklearn.base import TransformerMixin

from .errors import TargetWarning


class PrivateAtFit(TransformerMixin):  # type: ignore[misc]
    """A transformer whose `fit` takes the private attribute as `private`, or plainly as its second argument.

    Of two calls that look alike, `fit(X, y)` is that of somebody who has this estimator in hand. A pipeline
    calls `fit_transform(X, y)` for all steps but its last, with the target of that last one.
    """

    needs_private: ClassVar[bool] = True  # at fit

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Fit, and release the same records. With `private` given, y is the target of others and not used.

        Warns where it is not: a pipeline's target would be made the private attribute, and erased.
        """
        if fit_params.get("private") is not None:
            y = None
        elif y is not None and self.needs_private:
            name = type(self).__name__
            warnings.warn(
                TargetWarning(
                    f"{name}: y was taken for the private attribute, as private was not given. In a pipeline "
                    f"y is the target, which is now erased, and what is private is not protected: pass "
                    f"{name.lower()}__private=…, with the name of the step before the two underscores. Where "
                    "y is meant, say private=y.",
                    names=("private",),
                ),
                stacklevel=2,
            )
        return super().fit_transform(X, y, **fit_params)
