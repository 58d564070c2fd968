"""The OpenDP registry of deployments: write a promise as an entry, and check entries.

The registry keeps one YAML file per deployment (registry.opendp.org). It calls rho what Bun
and Steinke (2016) call rho; that is rho^2 here.
"""

from discreet.spec.registry.entry import as_yaml, registry_entry, write
from discreet.spec.registry.metadata import Metadata, read_metadata
from discreet.spec.registry.rules import missing, problems, problems_of_text, slug

__all__ = [
    "Metadata",
    "as_yaml",
    "missing",
    "problems",
    "problems_of_text",
    "read_metadata",
    "registry_entry",
    "slug",
    "write",
]
