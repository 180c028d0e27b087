"""Communities: nodes of a graph that are of several at once, from their lists of neighbours.

The mixed membership blockmodel of Airoldi, Blei, Fienberg, Xing 2008, by moments (Anandkumar, Ge,
Hsu, Kakade 2014): pairs and triples of different neighbours of a node are those of words of a
document of latent Dirichlet allocation. `filling` gives what they lack where nodes are few.
"""
