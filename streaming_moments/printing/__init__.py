"""How models print: their `repr` in a console, their table of HTML in a notebook."""
