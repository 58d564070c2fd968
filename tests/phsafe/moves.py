"""Towns of a few homes, and their neighbours: a person comes, goes, moves or changes."""

from dataclasses import replace

from hypothesis import strategies as st

from phsafe.homes import Home, Person

#: The states in which homes are.
STATES = ("01", "50")

RELATIVES = ["25", "26", "28", "30", "33", "34", "36"]
OTHERS = st.builds(
    Person,
    st.integers(0, 70),
    st.sampled_from(RELATIVES),
    st.sampled_from("12"),
    st.sampled_from(["01", "02", "07"]),
    st.sampled_from("12"),
)
HEADS = st.builds(
    Person,
    st.integers(16, 90),
    st.just("20"),
    st.sampled_from("12"),
    st.sampled_from(["01", "02", "07"]),
    st.sampled_from("12"),
)


RESIDENT = Person(19, "38")


def spouse(head: Person, kind: str) -> Person:
    sex = head.sex if kind in ("23", "24") else "12"[head.sex == "1"]
    return Person(44, kind, sex)


@st.composite
def towns(draw):
    homes = []
    for number in range(1, draw(st.integers(2, 4)) + 1):
        head = draw(HEADS)
        members = [head, *draw(st.lists(OTHERS, max_size=6))]
        kind = draw(st.sampled_from([None, "21", "22", "23", "24"]))
        if kind is not None:
            members.append(spouse(head, kind))
        tenure = draw(st.sampled_from("123"))
        homes.append(Home(number, tuple(members), tenure, draw(st.sampled_from(STATES))))
    return [*homes, Home(9, (RESIDENT, RESIDENT), quarters=True)]


def single(home: Home) -> bool:
    return not {"21", "22", "23", "24"} & {person.relationship for person in home.members}


def without(home: Home, at: int) -> Home:
    """Return the home after one member left; if that was the householder, the next one is it.

    Of a couple the other one stays, as a housemate: nobody is the spouse of a third.
    """
    members = list(home.members[:at] + home.members[at + 1 :])
    if members and at == 0 and not home.quarters:
        heir = next((n for n, one in enumerate(members) if one.age >= 16), 0)
        members.insert(0, replace(members.pop(heir), relationship="20"))
        couple = ("21", "22", "23", "24")
        members = [
            replace(one, relationship="34") if one.relationship in couple else one
            for one in members
        ]
    return home.having(members=tuple(members))


def joined(draw, home: Home) -> Home:
    """Return the home after a person joined it; vacant homes get a householder."""
    person = draw(OTHERS)
    if home.quarters:
        person = RESIDENT
    elif not home.members:
        person = draw(HEADS)
    elif single(home) and draw(st.booleans()):
        person = spouse(home.members[0], draw(st.sampled_from(["21", "22", "23", "24"])))
    return home.having(members=(*home.members, person))


@st.composite
def moves(draw, change: str):
    """Return a town and its neighbour: a person comes or goes, or one moves or changes.

    Anyone may go: householders too, whose heirs then change with the household, and residents
    of group quarters. Types, and as it may be the tenure, of altered homes follow. More than
    the promise asks: the tight bound is about households, whatever changes in them.
    """
    town = draw(towns())
    after = list(town)
    places = st.integers(0, len(town) - 1)
    if change == "replace" and draw(st.integers(0, 3)) == 0:  # a householder stays one
        at = draw(st.integers(0, len(town) - 2))
        head = replace(draw(HEADS), sex=after[at].members[0].sex)
        after[at] = after[at].having(members=(head, *after[at].members[1:]))
    else:
        leaves = change == "replace" or draw(st.booleans())
        if leaves:
            at = draw(places)
            who = draw(st.one_of(st.just(0), st.integers(0, len(after[at].members) - 1)))
            after[at] = without(after[at], who)
        if change == "replace" or not leaves:
            at = draw(places)
            after[at] = joined(draw, after[at])
    return town, [_renovated(draw, home, one) for home, one in zip(after, town, strict=True)]


def _renovated(draw, home: Home, before: Home) -> Home:
    """Return a home that was altered, perhaps under another tenure: its record is replaced."""
    if home == before or home.quarters:
        return home
    return home.having(tenure=draw(st.sampled_from("123")))
