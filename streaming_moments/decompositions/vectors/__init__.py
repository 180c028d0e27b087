"""Models of dense vectors from their moments: mixtures of Gaussians and independent factors.

Mixtures are fitted by the method of Hsu and Kakade, *Learning mixtures of spherical Gaussians*,
ITCS 2013. Skewed or kurtotic factors are fitted by the method of Anandkumar, Foster, Hsu, Kakade,
Liu, *A spectral algorithm for latent Dirichlet allocation*, NIPS 2012. Both methods whiten the rows
by the part of their covariance that is not noise. Then they find the rotation that diagonalises the
whitened third or fourth moment.
"""
