"""Commands for the tokens of a service."""

from __future__ import annotations

import click

from streaming_moments.pipelines.command_help import CommandGroup, OneOf
from streaming_moments.pipelines.command_line.shared_options import json_option, print_json
from streaming_moments.pipelines.service.tokens import Role, add_token, read_tokens, remove_token
from streaming_moments.pipelines.terminal import say

_ROLES = OneOf([role.name.lower() for role in Role])


@click.group(cls=CommandGroup)
def token() -> None:
    """Create, remove and list the tokens that identify callers of the service."""


@token.command(
    examples=(
        "streaming-moments token add tokens.json dashboard",
        "streaming-moments token add tokens.json crawler --role writer",
    )
)
@click.argument("file", type=click.Path(dir_okay=False))
@click.argument("name")
@click.option("--role", type=_ROLES, default="reader", show_default=True, help="Role of the token.")
@json_option
def add(file: str, name: str, role: str, json_output: bool) -> None:
    """Create a token called NAME and print it; FILE stores only its hash."""
    made = add_token(file, name, Role.called(role))
    if json_output:
        print_json({"file": file, "name": name, "role": role, "token": made})
    else:
        say(made)


@token.command(examples=("streaming-moments token remove tokens.json dashboard",))
@click.argument("file", type=click.Path(dir_okay=False))
@click.argument("name")
@json_option
def remove(file: str, name: str, json_output: bool) -> None:
    """Revoke the token called NAME; servers notice within seconds."""
    remove_token(file, name)
    if json_output:
        print_json({"file": file, "name": name, "removed": True})


@token.command(name="list", examples=("streaming-moments token list tokens.json",))
@click.argument("file", type=click.Path(dir_okay=False))
@json_option
def list_tokens(file: str, json_output: bool) -> None:
    """Show the names and roles of all tokens."""
    found = read_tokens(file)
    if json_output:
        told = [{"name": one.name, "role": one.role} for one in found]
        print_json({"file": file, "tokens": told})
    else:
        say(*(f"{one.name} {one.role}" for one in found))
