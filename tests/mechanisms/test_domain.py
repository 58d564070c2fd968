"""Promises of runs and of published systems are about one domain, so they can be compared."""

from discreet.census import load_schema
from discreet.mechanisms import mechanism
from discreet.spec import catalog, compare


def test_the_catalog_and_the_mechanisms_share_their_domain():
    schema = load_schema("us-decennial")
    swap = mechanism(
        "permutation-swapping", schema, {"rate": "1/20", "match": ["size"], "within": "state"}
    )
    own = swap.specify({"largest_stratum": 1000})
    published = catalog.specification("das-2020")
    assert own.domain == published.domain
    found = compare(own, published)
    assert found.verdict == "incomparable"
    assert len(found.witnesses) == 2
