# SPDX-License-Identifier: Apache-2.0
"""Treenail's generator: from options, facts about the machine and target records to build.ninja.

The map (docs/build.md tells more):

  configure  the order of the steps                   options  what the user asked for
  deps       the one table of external dependencies   distro   which distribution this is
  examine    which questions are asked                facts    the answers, as plain records
  probe      runs processes, the only module that does; what they are asked stands in
             toolchain, libraries and interpreters
  isa        instruction set levels                   records  what a targets.py may say
  model      targets.py files read and resolved       plan*    records + facts -> edges (pure)
  ninja      edges -> text (pure)                     install  where each file goes (pure)
  check      the laws of the tree                     summary  what configure prints at the end
  private_abi  which headers are shared, and their hash; installed_library finds one (--only)
  leftovers  what earlier configurations built        tools/   programs that build.ninja runs
"""
