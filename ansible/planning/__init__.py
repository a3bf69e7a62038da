# SPDX-License-Identifier: Apache-2.0
"""From the components' records (records.py) and what a site sets (options.py) to a plan (plan.py),
and from that to the environment it makes up (environment.py). filter_plugins/stack.py offers it to
plays.

A record is roles/<component>/component.yml; the settings are role variables. The plan is a list of
plain dictionaries, one per prefix, that the mechanics (role `component`), module files, stack-env
and the manifest read. Nothing here looks at a host, so everything is tested without one.
"""
