import numpy as np
from job import Job


def fault(job):
    from sklearn.cluster import KMeans
    from sklearn.decomposition import PCA
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, train_test_split
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.preprocessing import OneHotEncoder

    x, y = job.rng.normal(size=(40, 6)), job.rng.integers(0, 3, size=40)
    match job.how:
        case "parameter":
            KNeighborsClassifier(n_neighbors="5").fit(x, y)
        case "penalty":
            LogisticRegression(solver="lbfgs", l1_ratio=3.0, C=-1).fit(x, y)
        case "samples":
            LogisticRegression().fit(x, y[:-3])
        case "nan":
            x[3, 2] = np.nan
            PCA(3).fit(x)
        case "one":
            LogisticRegression().fit(x, np.zeros(40))
        case "clusters":
            KMeans(n_clusters=90, n_init=1).fit(x)
        case "unfitted":
            KNeighborsClassifier().predict(x)
        case "features":
            LogisticRegression().fit(x, y).predict(x[:, :4])
        case "unknown":
            OneHotEncoder().fit([["cat"], ["dog"]]).transform([["fox"]])
        case "split":
            train_test_split(x, y, test_size=1.5)
        case "folds":
            list(StratifiedKFold(30).split(x, y))


Job().run(fault)
