"""`airflow elastic …`: arguments in ``definition``, one module a command in ``commands``, loaded when it is called."""
