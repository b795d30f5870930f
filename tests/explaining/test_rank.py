"""Which of several causes comes first."""

from snugly.explaining.rank import Candidate, merge, rank


def make(code, role="cause", weight=50, **fields):
    known = {"confidence": 0.9, "is_memory": True, "evidence": [code]}
    return Candidate(code=code, role=role, weight=weight, **(known | fields))


def order(*candidates):
    return [candidate.code for candidate in rank(candidates)]


def test_a_cause_goes_before_what_only_warns():
    notice, warning = make("N", "notice", 99), make("W", "warning", 99)
    consequence, cause = make("F", "consequence", 99), make("C", "cause", 0)
    assert order(notice, consequence, cause, warning) == ["C", "F", "W", "N"]


def test_the_specific_goes_before_the_general():
    assert order(make("general", weight=10), make("specific", weight=90)) == ["specific", "general"]


def test_what_ended_a_program_goes_before_what_it_survived():
    survived, last = make("survived", weight=90), make("last", weight=70, is_terminal=True)
    assert order(survived, last) == ["last", "survived"]


def test_a_warning_at_the_end_is_still_a_warning():
    assert order(make("W", "warning", 99, is_terminal=True), make("C", weight=0)) == ["C", "W"]


def test_what_explains_another_goes_before_it_along_the_whole_chain():
    a = make("A", "consequence", 1, explains=frozenset({"B"}))
    b = make("B", weight=20, explains=frozenset({"C"}))
    c = make("C", weight=99, is_terminal=True)
    assert order(c, b, a) == ["A", "B", "C"]


def test_a_circle_of_explanations_ends():
    a, b = make("A", explains=frozenset({"B"})), make("B", explains=frozenset({"A"}))
    assert sorted(order(a, b)) == ["A", "B"]


def test_candidates_of_one_code_are_joined():
    weak = make("A", weight=10, evidence=["one"], confidence=0.6, notes=["n"])
    strong = make("A", weight=90, evidence=["two"], is_terminal=True)
    (joined,) = merge([weak, strong])
    assert joined.weight == 90
    assert joined.evidence == ["two", "one"]
    assert joined.notes == ["n"]
    assert 0.9 < joined.confidence <= 0.99
    (other_way,) = merge([make("A", weight=90), make("A", weight=10)])
    assert other_way.weight == 90
