"""What holds for all tests."""

from hypothesis import settings

# the first example of a kernel compiles it
settings.register_profile("without deadline", deadline=None)
settings.load_profile("without deadline")
