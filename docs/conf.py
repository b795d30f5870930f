"""Sphinx: furo and Markdown. The pages of message codes are written from the registry."""

from importlib.metadata import version as installed_version
from pathlib import Path

from snugly.codes import REGISTRY

project = "Snugly"
author = "The Snugly authors"
copyright = "The Snugly authors"
release = installed_version("snugly")

extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "Snugly"


def write_message_pages(folder: Path) -> None:
    """One page a code, and an index of them. The folder is not kept in version control."""
    folder.mkdir(exist_ok=True)
    for code, entry in REGISTRY.items():
        page = f"# {code}: {entry.title}\n\n{entry.meaning}\n\n**What to do.** {entry.remedy}\n"
        (folder / f"{code}.md").write_text(page, encoding="utf-8")
    index = [
        "# Messages",
        "",
        "Every message Snugly prints has a code; this is what they mean.",
        "",
    ]
    index += ["```{toctree}", ":maxdepth: 1", "", *REGISTRY, "```", ""]
    (folder / "index.md").write_text("\n".join(index), encoding="utf-8")


write_message_pages(Path(__file__).parent / "messages")
