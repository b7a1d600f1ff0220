"""The nouns that more than one package speaks of: frozen values, no behaviour beyond simple arithmetic.

Decided here: what a request's parts are called and which units they carry. Not decided here: how any value is
computed (the package that owns the stage does that).
"""

from gateway.types.backends import (
    BackendView,
    EngineKind,
    RequestCost,
)
from gateway.types.body import (
    Answer,
    AnswerText,
    Buffer,
    Call,
    ImageForm,
    ImagePart,
    Json,
    JsonObject,
    LongString,
    OtherMedium,
    Span,
    Usage,
)
from gateway.types.clips import (
    ClipFacts,
    ClipPlan,
    ClipProbe,
    Container,
    MediumKind,
    PreparedClip,
)
from gateway.types.media import (
    MAX_PAGES,
    Change,
    ColourModel,
    Fidelity,
    ImageFormat,
    ImagePlan,
    OutputFormat,
    Page,
    Prepared,
    Probe,
    Size,
    SourceFacts,
)
from gateway.types.names import (
    BackendName,
    ContentDigest,
    HeaderList,
    PlacementDigest,
    Pointer,
    RequestId,
    TaskName,
    TenantId,
    dotted,
)
from gateway.types.tokens import (
    ImageTokens,
    TokenEstimate,
)

__all__ = [
    "MAX_PAGES",
    "Answer",
    "AnswerText",
    "BackendName",
    "BackendView",
    "Buffer",
    "Call",
    "Change",
    "ClipFacts",
    "ClipPlan",
    "ClipProbe",
    "ColourModel",
    "Container",
    "ContentDigest",
    "EngineKind",
    "Fidelity",
    "HeaderList",
    "ImageForm",
    "ImageFormat",
    "ImagePart",
    "ImagePlan",
    "ImageTokens",
    "Json",
    "JsonObject",
    "LongString",
    "MediumKind",
    "OtherMedium",
    "OutputFormat",
    "Page",
    "PlacementDigest",
    "Pointer",
    "Prepared",
    "PreparedClip",
    "Probe",
    "RequestCost",
    "RequestId",
    "Size",
    "SourceFacts",
    "Span",
    "TaskName",
    "TenantId",
    "TokenEstimate",
    "Usage",
    "dotted",
]
