from pathlib import Path

# Benchmarks are run by hand: pytest neither collects nor imports them but for what they count.
collect_ignore = [
    path.name for path in Path(__file__).parent.glob("*.py") if not path.name.startswith("test_")
]
