"""Jobs for several stores that count the same words by the same rules: counts can be added."""
