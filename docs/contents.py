"""Tables of contents of the site, made from the links of index pages: GitHub shows no toctree."""

import re
from collections.abc import Sequence

_LISTED = re.compile(r"^(?:- |\*\*)\[[^\]]+\]\((\S+)\.(?:md|rst)\)", re.MULTILINE)


def with_contents(name: str, text: str, generated: Sequence[str]) -> str:
    """Append tables of contents to an index page, and let links to the gallery lead to examples.

    name : of the page in its folder, without a suffix
    generated : names of the pages of the reference that the build writes
    """
    # the site has the examples with their pictures in place of the list of their scripts
    text = text.replace("gallery.md)", "examples/index.rst)")
    if name == "reference/index":
        python = [one for one in generated if one.startswith("api_")]
        others = [one for one in generated if not one.startswith("api_")]
        built = [
            _toctree([f"generated/{one}" for one in names], f":caption: {title}\n:maxdepth: 1")
            for title, names in (("Python", python), ("Commands and services", others))
        ]
        # the site has the pages in place of what a clone reads
        intro, heading, rest = text.partition("\n## ")
        text = intro + "".join(built) + heading + rest
    elif name == "index":
        # pages of a folder are listed by its index
        return text + _toctree([one for one in listed(text) if re.fullmatch(r"\w+(/index)?", one)])
    elif not name.endswith("/index") or name == "examples/index":
        return text
    return text + _toctree(listed(text))


def listed(text: str) -> list[str]:
    """Pages that an index page links at the beginning of a line, in order."""
    return _LISTED.findall(text)


def _toctree(pages: Sequence[str], options: str = ":hidden:") -> str:
    return "\n".join(["", "```{toctree}", options, "", *pages, "```", ""])
