"""The service: `elman serve MODEL...` answers over HTTP what the library answers in Python.

from elman.serve.app import create_app
from elman.serve.service import Service
app = create_app(Service.loading({"mine": "runs/mine"}))     # an ASGI application, for any server of such
"""
