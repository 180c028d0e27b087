"""Communities: mixed memberships of the nodes of a graph, from their lists of neighbours.

The model is the mixed membership blockmodel of Airoldi, Blei, Fienberg, Xing 2008. It is fitted by
moments (Anandkumar, Ge, Hsu, Kakade 2014). Pairs and triples of different neighbours of a node
behave like words of a document in latent Dirichlet allocation. `filling` corrects the bias of small
graphs.
"""
