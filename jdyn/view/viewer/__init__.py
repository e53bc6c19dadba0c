"""The viewer in a browser."""

from jdyn.view.viewer.view import view as view
