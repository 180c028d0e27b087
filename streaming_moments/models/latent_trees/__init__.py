"""Latent trees: a tree of hidden states that explains the columns of a categorical table.

Song, Parikh, Xing 2011; Anandkumar, Chaudhuri, Hsu, Kakade, Song, Zhang 2011. `model` combines
`structure` (the tree of hidden nodes), `three_views` and `parameters` (probability tables).
`directed` does the inference. `chow_liu` fits a tree without hidden nodes, for comparison.
"""
