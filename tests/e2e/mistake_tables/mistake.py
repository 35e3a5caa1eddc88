"""A row of the table of mistakes: what somebody does, and the three parts of what they are told."""

from dataclasses import dataclass, field

from option_models import LANGUAGE


@dataclass
class Mistake:
    title: str
    ask: tuple       # the command line, or its words in one string
    wrong: str       # what is wrong,
    where: str       # where: a file with its line, the option, the file of data
    do: str          # and what to do, or what was expected
    recipe: str = ""             # written to mine.toml before
    files: dict = field(default_factory=dict)  # name to text or bytes, written before
    text: str = ""               # standard input
    status: int = 2

    def arguments(self):
        return self.ask.split() if isinstance(self.ask, str) else list(self.ask)


def edited(old, new, recipe=LANGUAGE):
    """A recipe that works, with one thing in it changed."""
    assert old in recipe, (old, recipe)
    return recipe.replace(old, new, 1)


def in_recipe(title, old, new, *, wrong, do, where=None, base=LANGUAGE, **more):
    """A mistake in a recipe: its place is the line that was changed, unless it is said otherwise."""
    recipe = edited(old, new, base)
    if where is None:
        lines = recipe.splitlines()
        changed = new.splitlines()[-1] if new else lines[0]
        where = f"mine.toml:{lines.index(changed) + 1}" if changed in lines else "mine.toml"
    return Mistake(title, "train mine.toml --out new", wrong, where, do, recipe=recipe, **more)
