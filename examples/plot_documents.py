"""
Topics of documents
===================

A scikit-learn pipeline after ``TfidfVectorizer``: each text gets one topic, and ``top_terms`` names it.
"""

# %%
# The documents are the descriptions of scikit-learn's own estimators, taken from their docstrings: real text that is on every machine that
# can run this.

import re
from inspect import getdoc

import matplotlib.pyplot as plt
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.utils import all_estimators

from orthonmf import ONMF, top_terms


def description(estimator):
    """What comes before the parameters, without references and directives."""
    text = getdoc(estimator).split("\nParameters\n")[0]
    return re.sub(r":\w+:`[^`]*`|^\.\. .*$|Read more in the", "", text, flags=re.MULTILINE).strip()


texts = {name: description(estimator) for name, estimator in all_estimators()}
print(len(texts), "documents; one of them:\n")
print(texts["RandomForestClassifier"].split("\n\n")[1])

# %%
# The vectoriser gives a sparse matrix, which stays sparse. With the default ``scaling="item"`` a topic is a direction, so that long and
# short texts on one subject belong together. ``min_size`` keeps a topic from being two texts that quote each other.

words = TfidfVectorizer(stop_words="english", min_df=4, max_df=0.4, token_pattern="[a-z]{3,}")
topics = make_pipeline(words, ONMF(8, min_size=8)).fit(list(texts.values()))

# %%
# The words that speak for each topic, and some of its texts.

labels = topics[-1].labels_
for number, terms in enumerate(top_terms(topics, n_terms=6)):
    members = [name for name, label in zip(texts, labels, strict=True) if label == number]
    print(f"{number}  {', '.join(term.name for term in terms)}")
    print(f"   {len(members)} texts: {', '.join(members[:4])}, …\n")

# %%
# The same as a picture.

figure, axes = plt.subplots(2, 4, figsize=(12, 5), layout="constrained")
for number, (axis, terms) in enumerate(zip(axes.flat, top_terms(topics, n_terms=7), strict=True)):
    names, weights, _ = zip(*reversed(terms), strict=True)
    axis.barh(names, weights, color="#0072B2")
    axis.set_title(f"topic {number}: {(labels == number).sum()} texts")
    axis.set_xticks([])
    axis.spines[:].set_visible(False)
    axis.tick_params(length=0)

# %%
# A new text goes to its nearest topic.

sentence = "Fits an ensemble of randomised decision trees to bootstrap samples and averages them."
number = topics.predict([sentence])[0]
print(number, [term.name for term in top_terms(topics, n_terms=6)[number]])

# %%
# The other way round, each *word* belongs to one topic and a text has a share of each: ``orthogonal="features"``. The vocabulary falls into
# word lists that do not overlap.

lists = make_pipeline(words, ONMF(6, orthogonal="features")).fit(list(texts.values()))
for terms in top_terms(lists, n_terms=8):
    print(", ".join(term.name for term in terms))
