"""Commands of who may ask the service."""

from __future__ import annotations

import click

from streaming_moments.pipelines.service.tokens import Role, add_token, read_tokens, remove_token
from streaming_moments.pipelines.terminal import say

_ROLES = click.Choice([role.name.lower() for role in Role])


@click.group()
def token() -> None:
    """Make and remove the tokens by which callers of the service are known."""


@token.command()
@click.argument("file", type=click.Path(dir_okay=False))
@click.argument("name")
@click.option("--role", type=_ROLES, default="reader", show_default=True, help="What it may do.")
def add(file: str, name: str, role: str) -> None:
    """Make a token called NAME and print it; FILE keeps its hash alone."""
    say(add_token(file, name, Role.called(role)))


@token.command()
@click.argument("file", type=click.Path(dir_okay=False))
@click.argument("name")
def remove(file: str, name: str) -> None:
    """Let the token called NAME be one no more; servers see that within seconds."""
    remove_token(file, name)


@token.command(name="list")
@click.argument("file", type=click.Path(dir_okay=False))
def list_tokens(file: str) -> None:
    """Show names and roles."""
    say(*(f"{one.name} {one.role}" for one in read_tokens(file)))
