#!/usr/bin/env python3
"""What somebody does who has just read README.md, and what goes wrong for them."""
from fleet import Fleet, Resp, main


def folders_are_made_with_those_they_are_in(binary):
    with Fleet(binary) as fleet:
        data = fleet.data
        fleet.data = lambda name: data("ringhold-data/deep/" + name)
        fleet.coordinators(1)
        fleet.node("n1")
        redis = Resp(fleet.gateway("g1").resp)
        assert redis("SET", "ada", "36") == "OK"


main(
    [
        folders_are_made_with_those_they_are_in,
    ]
)
