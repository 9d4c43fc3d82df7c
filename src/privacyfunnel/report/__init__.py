"""Reading an AuditReport or a Comparison: pages, figures and the release card. Nothing here measures."""

from .card import card_markdown, release_card, save_card
from .figures import plot_confusion, plot_embedding, plot_leakage, plot_samples, plot_success
from .html import save_comparison, save_html
from .methods import compare
from .tradeoffs import plot_information_plane, plot_success_psnr

__all__ = [
    "card_markdown",
    "compare",
    "plot_confusion",
    "plot_embedding",
    "plot_information_plane",
    "plot_leakage",
    "plot_samples",
    "plot_success",
    "plot_success_psnr",
    "release_card",
    "save_card",
    "save_comparison",
    "save_html",
]
