"""Latent trees: a tree of hidden variables that explains the columns of a categorical table.

The methods are from Song, Parikh, Xing 2011, and Anandkumar, Chaudhuri, Hsu, Kakade, Song, Zhang
2011. `model` combines `structure` (the tree of hidden nodes), `three_views` and `parameters`
(probability tables). `directed` does the inference. `chow_liu` fits a tree without hidden nodes,
for comparison.
"""
