"""What earlier agents teach a layout: a population over agents, and how easy each instance is.

Begin with `calibrate`: it turns a layout and the outcomes of several agents into a calibrated
layout. `population` is the hierarchical model behind it, and `assessment` how well calibrated
layouts predict agents that were held out. `group` fits persons together.
"""
