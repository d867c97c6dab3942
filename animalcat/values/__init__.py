"""What client and service both speak of: the values of sessions, campaigns and what goes with them.

Each stands here once: frozen, checked when it is made, stored as it is (`service.storage.records`)
and put on the wire by one codec (`animalcat.codec`). `sessions` has what defines a session and
where it stands, `campaigns` several agents with one budget, `attempts` its episodes, `decisions`
why instances were chosen, `recordings` what was recorded, `profiles` the verdict, `batteries`
the arenas and layouts that there are, and `operations` what takes long. `options` is the table of
what may be chosen for a session or a campaign, which the command line, campaign files and Python
read.

Where a number or a time is None it is not set. Where a newer server says a word that this version
does not have, clients find None.
"""

from animalcat.layouts.adaptive.plan import Allocation as Allocation
from animalcat.layouts.adaptive.plan import Policy as Policy
from animalcat.layouts.adaptive.plan import StoppingRule as StoppingRule
from animalcat.plugins import Plugin as Plugin
from animalcat.values.attempts import BY_DEFAULT as BY_DEFAULT
from animalcat.values.attempts import ENDS as ENDS
from animalcat.values.attempts import NOTHING as NOTHING
from animalcat.values.attempts import Cause as Cause
from animalcat.values.attempts import End as End
from animalcat.values.attempts import Episode as Episode
from animalcat.values.attempts import Outcome as Outcome
from animalcat.values.attempts import Ruling as Ruling
from animalcat.values.attempts import Spent as Spent
from animalcat.values.attempts import Whose as Whose
from animalcat.values.attempts import cause_of as cause_of
from animalcat.values.batteries import Battery as Battery
from animalcat.values.batteries import Feature as Feature
from animalcat.values.batteries import Instance as Instance
from animalcat.values.batteries import Layout as Layout
from animalcat.values.batteries import MeasuredBy as MeasuredBy
from animalcat.values.batteries import RecipeText as RecipeText
from animalcat.values.campaigns import MAX_TAKE as MAX_TAKE
from animalcat.values.campaigns import Campaign as Campaign
from animalcat.values.campaigns import CampaignSpec as CampaignSpec
from animalcat.values.decisions import PRACTICE as PRACTICE
from animalcat.values.decisions import Alternative as Alternative
from animalcat.values.decisions import Decision as Decision
from animalcat.values.decisions import MadeAs as MadeAs
from animalcat.values.decisions import MadeInstance as MadeInstance
from animalcat.values.operations import Operation as Operation
from animalcat.values.operations import OperationKind as OperationKind
from animalcat.values.operations import OperationState as OperationState
from animalcat.values.operations import PlacedFit as PlacedFit
from animalcat.values.operations import PlacedWorker as PlacedWorker
from animalcat.values.operations import ProcessPlacement as ProcessPlacement
from animalcat.values.operations import Refusal as Refusal
from animalcat.values.profiles import AgentKind as AgentKind
from animalcat.values.profiles import Verdict as Verdict
from animalcat.values.profiles import verdict_of as verdict_of
from animalcat.values.recordings import EpisodeFooter as EpisodeFooter
from animalcat.values.recordings import EpisodeHeader as EpisodeHeader
from animalcat.values.recordings import RecordedStep as RecordedStep
from animalcat.values.sessions import MAX_EPISODES as MAX_EPISODES
from animalcat.values.sessions import MAX_SECRET as MAX_SECRET
from animalcat.values.sessions import MAX_SLOTS as MAX_SLOTS
from animalcat.values.sessions import NOBODY as NOBODY
from animalcat.values.sessions import CapabilityStatus as CapabilityStatus
from animalcat.values.sessions import Identity as Identity
from animalcat.values.sessions import MeasuringStatus as MeasuringStatus
from animalcat.values.sessions import Opponent as Opponent
from animalcat.values.sessions import Session as Session
from animalcat.values.sessions import SessionEvent as SessionEvent
from animalcat.values.sessions import SessionSpec as SessionSpec
from animalcat.values.sessions import SessionState as SessionState
from animalcat.values.sessions import SessionVerification as SessionVerification
from animalcat.values.sessions import Ticket as Ticket
from animalcat.values.sessions import episodes_words as episodes_words
