"""What the help says of options that several servers have."""

#: The help of the option that all servers have.
LOG_FILE = (
    "write the log into this file, too, with the name of the process in each line; all servers may "
    "write into the same one"
)

#: The help of the option of all that answer operators.
HTTP_BIND = (
    "answer HTTP at this address: /healthz and /readyz say how the server is, /metrics has figures "
    "for Prometheus; by default there is no such port"
)

#: The help of an option of all that deliver steps.
WHEN_FULL = (
    "what happens to steps while the replay takes no more, because the learner does not keep up: "
    "'wait' lets environments wait, but for no more than five seconds where it does not answer at "
    "all; 'drop' never does; what is dropped is counted"
)

#: The help of the option of all that use S3.
AWS_ENDPOINT_URL = (
    "URL of an S3 store that is not Amazon's, such as MinIO or Ceph; by default that of the "
    "environment variable AWS_ENDPOINT_URL_S3, if it is set"
)

#: The help of the option of all that need the parameter server.
PARAMETER_SERVER = (
    "address of the parameter server, or of all its shards, the first one first; by default the "
    "--shards of its section in the YAML file"
)

#: The help of the option of all that end with the training.
GIVE_UP = (
    "end, with status 1, when the parameter server has not answered for so long, since the start "
    "or since its last answer: it may have ended with the training meanwhile"
)

#: The same of those that save checkpoints.
GIVE_UP_WITH_STORE = f"{GIVE_UP}; or when S3 does not answer at the start"

#: The help of the option of all that save checkpoints.
LIST_CHECKPOINTS = (
    "print a table of the checkpoints that there are, and exit; nothing is changed, and a training "
    "may go on meanwhile"
)

#: The help of an option of all that read the checkpoints of a training.
CHECKPOINTS_OF = (
    "directory of checkpoints; by default that of the parameter server's section in the YAML file"
)

#: The help of options of all that store steps.
EVICT_AFTER = "evict steps that are older than so many seconds; if omitted, only to make room"
EVICT_INTERVAL = "seconds between two times at which --evict-after is looked at"

#: What the description of an option ends with that the learner's section may give.
FROM_LEARNER = "; by default those of the learner's section in the YAML file"
