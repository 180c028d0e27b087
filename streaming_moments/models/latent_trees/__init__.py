"""Latent trees: hidden states between the columns of a categorical table, and how they join them.

Song, Parikh, Xing 2011; Anandkumar, Chaudhuri, Hsu, Kakade, Song, Zhang 2011. `model` puts together
`structure` (which hidden nodes there are), `three_views` and `parameters` (what they say of the
columns); `directed` is inference, `chow_liu` the tree without hidden nodes to compare with.
"""
