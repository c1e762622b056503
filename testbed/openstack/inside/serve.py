"""serve.py MODULE PORT ADDRESS CERTIFICATE KEY: a service of OpenStack, inside by HTTP and for others by TLS."""

import importlib
import logging
import sys
import threading

module, port, address, certificate, key = sys.argv[1:]
sys.argv = ["serve"]  # oslo.config reads it
logging.getLogger("werkzeug").setLevel(logging.WARNING)
if module.startswith("neutron"):
    import neutron.db.migration.models.head  # noqa: F401
    import sqlalchemy.orm

    sqlalchemy.orm.configure_mappers()  # ports know their forwardings only with all models
application = importlib.import_module(module).application

from werkzeug.serving import make_server  # noqa: E402

inner = make_server("127.0.0.1", int(port), application, threaded=True)
outer = make_server(address, int(port), application, threaded=True, ssl_context=(certificate, key))
threading.Thread(target=inner.serve_forever, daemon=True).start()
outer.serve_forever()
