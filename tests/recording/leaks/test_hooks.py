"""Hooks run beside what they watch, never fail it, and leave nothing behind."""

from types import SimpleNamespace

from snugly.recording.leaks.hooks import Hooks


class Machine:
    def run(self, value):
        return value * 2

    def __new__(cls, *args):
        del args
        return super().__new__(cls)


def test_a_hook_sees_what_a_method_gives_and_gets():
    seen = []
    hooks = Hooks()
    hooks.after(
        Machine, "run", lambda result, args, kwargs: seen.append((result, args[1:], kwargs))
    )
    assert Machine().run(3) == 6
    hooks.remove()
    Machine().run(4)
    assert seen == [(6, (3,), {})]


def test_removal_puts_the_original_back():
    before = dict(vars(Machine))
    hooks = Hooks()
    hooks.after(Machine, "run", lambda *_: None)
    hooks.after(Machine, "__new__", lambda *_: None)
    assert dict(vars(Machine)) != before
    assert isinstance(Machine(1), Machine)
    hooks.remove()
    assert dict(vars(Machine)) == before


def test_a_failing_hook_is_silenced_and_told_of():
    hooks = Hooks()
    hooks.after(Machine, "run", lambda *_: 1 / 0)
    assert Machine().run(3) == 6
    hooks.remove()
    assert list(hooks.failures.values()) == [["ZeroDivisionError: division by zero"]]


def test_a_hook_that_fails_for_ever_is_switched_off():
    hooks = Hooks()
    hooks.after(Machine, "run", lambda *_: 1 / 0)
    for _ in range(100):
        Machine().run(1)
    assert not hooks.active
    assert sum(map(len, hooks.failures.values())) < 20
    hooks.remove()


def test_a_wrapper_that_others_have_wrapped_is_left_and_passes_through():
    # GIVEN a module function that we wrap, and somebody else after us
    seen = []
    module = SimpleNamespace(run=lambda value: value + 1)
    hooks = Hooks()
    hooks.after(module, "run", lambda *_: seen.append(1))
    ours = module.run
    module.run = lambda value: ours(value) * 10
    # WHEN we leave
    assert module.run(1) == 20
    hooks.remove()
    # THEN theirs stays and still works, and ours sees nothing any more
    assert module.run(1) == 20
    assert seen == [1]


def test_a_hook_does_not_run_inside_itself():
    seen = []
    hooks = Hooks()

    def action(*_):
        seen.append(1)
        Machine().run(5)

    hooks.after(Machine, "run", action)
    Machine().run(3)
    hooks.remove()
    assert seen == [1]


def test_a_name_that_is_not_there_is_left():
    hooks = Hooks()
    hooks.after(Machine, "no_such_method", lambda *_: None)
    hooks.remove()
    assert not hasattr(Machine, "no_such_method")
