"""Keeps what sessions are made of, by digest and by name: `batteries` and `layouts`.

`plugins` says what of other packages a session uses, and whether that is what it was. `bounded`
reads what strangers send in processes that can be ended.
"""
