"""Pages about what was found, one file each, which open alone."""

from jdyn.reports.identification import save_report as save_report
