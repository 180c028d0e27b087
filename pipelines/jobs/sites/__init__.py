"""Jobs for several stores that share one foundation, so that their counts can be added."""
