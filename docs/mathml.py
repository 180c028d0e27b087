"""Formulas of pages as MathML, which browsers draw without a script or a network."""

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

# `make docs` has the wide formulas scroll in themselves, on narrow screens too
_BLOCK = '<div class="math" tabindex="0" style="overflow-x: auto; padding: 0.3em 0">{}</div>'


def inline(translator, node):
    """Write a formula in a line of text."""
    translator.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def block(translator, node):
    """Write a formula on lines of its own."""
    formula = tex2mathml(node.astext()).replace("<math ", '<math display="block" ', 1)
    translator.body.append(_BLOCK.format(formula))
    raise nodes.SkipNode
