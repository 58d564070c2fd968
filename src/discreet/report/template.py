"""Fill the templates of the pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import jinja2


def fill(template: str, filters: Mapping[str, Callable[..., str]], **facts: object) -> str:
    """Return a template filled with facts; text is escaped, and a fact left out is an error."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("discreet.report", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters.update(filters)
    return environment.get_template(template).render(**facts)
