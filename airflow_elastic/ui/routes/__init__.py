"""Routes of the page: ``page`` (HTML) and ``data`` (JSON). Every one of them is authorised."""
