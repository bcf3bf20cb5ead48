"""Tests on the default model. Being a package ends its service before another folder starts one."""
