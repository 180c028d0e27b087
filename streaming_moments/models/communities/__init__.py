"""Communities: mixed memberships of the nodes of a graph, from their lists of neighbours.

The model is the mixed membership blockmodel of Airoldi, Blei, Fienberg, Xing 2008. It is fitted by
moments (Anandkumar, Ge, Hsu, Kakade 2014). A node is like a document in latent Dirichlet
allocation, and its neighbours are like words. The module `filling` corrects the bias that small
graphs have, because a node occurs at most once in a list of neighbours.
"""
