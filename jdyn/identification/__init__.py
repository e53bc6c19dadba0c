"""Identification of inertial and joint parameters from measured motions."""

from jdyn.identification.base import BaseParameters as BaseParameters
from jdyn.identification.base import base_parameters as base_parameters
from jdyn.identification.base_fit import BaseFit as BaseFit
from jdyn.identification.base_fit import fit_base_parameters as fit_base_parameters
from jdyn.identification.channels import ChannelFit as ChannelFit
from jdyn.identification.excitation import Excitation as Excitation
from jdyn.identification.excitation import exciting_motion as exciting_motion
from jdyn.identification.fourier import FourierSeries as FourierSeries
from jdyn.identification.identify import Identification as Identification
from jdyn.identification.identify import identify as identify
from jdyn.identification.identify_log import LogIdentification as LogIdentification
from jdyn.identification.identify_log import Prediction as Prediction
from jdyn.identification.identify_log import identify_log as identify_log
from jdyn.identification.log_file import read_log as read_log
from jdyn.identification.measurement import Measurement as Measurement
from jdyn.identification.measurement import accelerations as accelerations
from jdyn.identification.measurement import measurement as measurement
from jdyn.identification.recording import Recording as Recording
from jdyn.identification.recording import recording as recording
from jdyn.identification.report import save_report as save_report
from jdyn.identification.sampling import LogWarning as LogWarning
from jdyn.identification.standard import standard_names as standard_names
from jdyn.identification.standard import standard_regressor as standard_regressor
from jdyn.identification.standard import standard_values as standard_values
