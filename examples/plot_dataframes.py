"""
pandas and polars, with names
=============================

Data frames in, data frames out: columns keep their names on the way.
"""

# %%
# Thirteen measurements of 178 wines. They have different units, so each column is first mapped to the range from 0 to 1.

import pandas as pd
import polars as pl
from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from orthonmf import ONMF, top_terms
from orthonmf.plot import ComponentsDisplay

wine = load_wine(as_frame=True)
model = make_pipeline(MinMaxScaler(), ONMF(3)).set_output(transform="pandas")
T = model.fit_transform(wine.data)
T.head()

# %%
# The index is that of the input. The labels as a column beside the data:

labelled = wine.data.assign(component=model[-1].labels_)
labelled.groupby("component")[["alcohol", "flavanoids", "proline"]].mean()

# %%
# The components as a frame, and their largest entries by name:

onmf = model[-1]
components = pd.DataFrame(onmf.components_, index=onmf.get_feature_names_out(), columns=onmf.feature_names_in_)
components.T.round(2)

# %%

for terms in top_terms(onmf, n_terms=3):
    print(", ".join(f"{term.name} {term.weight:.2f}" for term in terms))

ComponentsDisplay.from_estimator(onmf)

# %%
# A frame whose columns are in another order is refused, not misread.

try:
    model.predict(wine.data[wine.data.columns[::-1]])
except ValueError as error:
    print(error)

# %%
# polars works in the same way.

frame = pl.from_pandas(wine.data)
T = ONMF(3).set_output(transform="polars").fit_transform(frame)
print(T.head(3))
