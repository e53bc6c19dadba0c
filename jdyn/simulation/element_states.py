"""States of force elements as a part of the state."""

from jdyn.elements import Elements
from jdyn.simulation.state import Owner


class ElementStates(Owner):
    """States that force elements have of their own, as a tuple in their order; None for elements without."""

    part = "elements"

    elements: Elements

    def start(self, model, t, q, v):
        return self.elements.start(model, t, q, v)

    def rate(self, model, t, y, tau):
        return self.elements.rate(model, t, y.q, y.v, y.parts[self.part])
