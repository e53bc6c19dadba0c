"""Identification: experiments, base parameters and what is found.

>>> found = jdyn.identification.base_parameters(jdyn.load("double_pendulum"))
>>> print(found.rank)
11
"""

from jdyn.identification import BaseFit as BaseFit
from jdyn.identification import BaseParameters as BaseParameters
from jdyn.identification import ChannelFit as ChannelFit
from jdyn.identification import Excitation as Excitation
from jdyn.identification import FourierSeries as FourierSeries
from jdyn.identification import Identification as Identification
from jdyn.identification import LogIdentification as LogIdentification
from jdyn.identification import LogWarning as LogWarning
from jdyn.identification import Measurement as Measurement
from jdyn.identification import Prediction as Prediction
from jdyn.identification import Recording as Recording
from jdyn.identification import accelerations as accelerations
from jdyn.identification import base_parameters as base_parameters
from jdyn.identification import exciting_motion as exciting_motion
from jdyn.identification import fit_base_parameters as fit_base_parameters
from jdyn.identification import identify_log as identify_log
from jdyn.identification import measurement as measurement
from jdyn.identification import read_log as read_log
from jdyn.identification import recording as recording
from jdyn.identification import save_report as save_report
from jdyn.identification import standard_names as standard_names
from jdyn.identification import standard_regressor as standard_regressor
from jdyn.identification import standard_values as standard_values
