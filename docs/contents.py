"""Tables of contents of the site, made from the links of index pages: GitHub shows no toctree."""

import re
from collections.abc import Sequence

_LISTED = re.compile(r"^(?:- |\*\*)\[[^\]]+\]\((\S+)\.md\)", re.MULTILINE)


def with_contents(name: str, text: str, generated: Sequence[str]) -> str:
    """Append tables of contents to an index page; other pages stay as they are.

    name : of the page in its folder, without a suffix
    generated : names of the pages of the reference that the build writes
    """
    if name == "gallery":
        return text + _toctree(["examples/index"])
    if name == "reference/index":
        python = [one for one in generated if one.startswith("api_")]
        others = [one for one in generated if not one.startswith("api_")]
        for title, names in (("Python", python), ("Commands and services", others)):
            built = [f"generated/{one}" for one in names]
            text += f"\n## {title}, page by page\n" + _toctree(built, hidden=False)
    elif name == "index":
        # pages of a folder are listed by its index
        return text + _toctree([one for one in listed(text) if re.fullmatch(r"\w+(/index)?", one)])
    elif not name.endswith("/index"):
        return text
    return text + _toctree(listed(text))


def listed(text: str) -> list[str]:
    """Pages that an index page links at the beginning of a line, in order."""
    return _LISTED.findall(text)


def _toctree(pages: Sequence[str], hidden: bool = True) -> str:
    return "\n".join(["", "```{toctree}", ":hidden:" if hidden else "", "", *pages, "```", ""])
