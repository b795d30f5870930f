"""The page of the GPU's accuracy."""

from tests.accuracy.gpu import key, page, wanted


def record(program, peak, predicted, *, jit=False):
    low, high = round(0.9 * predicted), round(1.1 * predicted)
    said = {"peak": predicted, "low": low, "high": high}
    about = {"program": program, "batch": 8, "mode": "train", "jit": jit}
    return about | {"peak": peak, "predicted": said}


def test_the_page_sums_up_by_kind():
    results = {
        "date": "2026-11-15",
        "device": "NVIDIA H200",
        "tensorflow": "2.21.0",
        "keras": "3.15.1",
        "measured": [
            record("mlp", 100 << 20, 110 << 20),
            record("cnn", 100 << 20, 80 << 20),
            record("vgg19-96", 100 << 20, 101 << 20, jit=True),
            {"program": "lstm", "batch": 8, "mode": "train", "jit": True, "peak": 5},
        ],
    }
    text = page(results)
    assert "| op by op | 2 | 15.0 % | 20.0 % | 50.0 % |" in text
    assert "| XLA, programs kept apart | 1 | 1.0 % |" in text
    assert "| mlp | 8 | train |  | 100.0 | 110.0 | 99.0–121.0 | +10.0 % |" in text
    assert "lstm" not in text


def test_every_model_is_wanted_with_and_without_xla():
    cases = [key(case) for case in wanted(("mlp", "matmul-chain"))]
    assert ("mlp", 512, "train", True) in cases
    assert ("mlp", 512, "train", False) in cases
    assert [case for case in cases if case[0] == "matmul-chain"] == [
        ("matmul-chain", 1024, "infer", False)
    ]
