"""Remote inference: a server with the policy chooses for workers and actors that have none.

``wire``     questions and answers as messages
``batching`` gathers the questions that wait, and evaluates them at once
``service``  answers them by gRPC
``client``   asks one of several servers, and another one when it is away
``servers``  where these are: at given addresses, or by a name
"""
