"""Looking inside trained models: plain data first, then the same as a page, a picture or lines of a terminal.

import elman.inspect

explanation = elman.inspect.explain(elman.load("runs/reviews"), ["a fine film"], view="saliency")
explanation.data[0]                          # plain data, one for each text
explanation.save("page.html")                # or .json, .png, .svg
"""

from elman.inspect.explain import Explanation, explain, views_of
from elman.inspect.views import VIEWS

__all__ = ["VIEWS", "Explanation", "explain", "views_of"]
