"""Jobs for several stores that count the same words by the same rules, so counts can be added."""
