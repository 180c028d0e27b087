from pathlib import Path

# Benchmarks are run by hand: pytest neither collects nor imports them but for what they count.
collect_ignore = [
    str(path) for path in Path(__file__).parent.rglob("*.py") if not path.name.startswith("test_")
]
